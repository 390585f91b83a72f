// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

interface IERC20 {
    function transfer(address to, uint256 amount) external returns (bool);
    function transferFrom(address from, address to, uint256 amount) external returns (bool);
}

/// @title SavingsPlans
/// @notice Releases tokens to a beneficiary second by second between two dates.
/// @dev The token may have any number of decimals; it takes no transfer fee and returns true on success.
contract SavingsPlans {
    struct Plan {
        address beneficiary;
        uint256 total;
        uint256 startsAt;
        uint256 duration;
        uint256 withdrawn;
    }

    uint256 public constant MAX_DURATION = 10 * 365 days;

    IERC20 public immutable token;
    Plan[] private plans;

    event PlanCreated(uint256 indexed id, address indexed payer, address indexed beneficiary, uint256 total);
    event Withdrawn(uint256 indexed id, address indexed beneficiary, uint256 amount);
    event BeneficiaryChanged(uint256 indexed id, address indexed beneficiary);

    constructor(IERC20 token_) {
        token = token_;
    }

    /// @notice Creates a plan with tokens of the caller.
    /// @param startsAt Start of the release, now or later.
    /// @param duration Length of the release in seconds.
    function createPlan(address beneficiary, uint256 total, uint256 startsAt, uint256 duration)
        external
        returns (uint256 id)
    {
        require(beneficiary != address(0), "zero address");
        require(total > 0, "nothing saved");
        require(startsAt >= block.timestamp, "starts in the past");
        require(duration > 0 && duration <= MAX_DURATION, "bad duration");
        id = plans.length;
        plans.push(Plan(beneficiary, total, startsAt, duration, 0));
        emit PlanCreated(id, msg.sender, beneficiary, total);
        require(token.transferFrom(msg.sender, address(this), total), "transfer failed");
    }

    /// @notice Pays what a plan has released so far to its beneficiary.
    function withdraw(uint256 id) external {
        Plan storage plan = plans[id];
        require(msg.sender == plan.beneficiary, "not beneficiary");
        uint256 amount = vestedAmount(id) - plan.withdrawn;
        require(amount > 0, "nothing released");
        plan.withdrawn += amount;
        emit Withdrawn(id, msg.sender, amount);
        require(token.transfer(msg.sender, amount), "transfer failed");
    }

    /// @notice Hands a plan over to another beneficiary.
    function changeBeneficiary(uint256 id, address to) external {
        require(msg.sender == plans[id].beneficiary, "not beneficiary");
        require(to != address(0), "zero address");
        plans[id].beneficiary = to;
        emit BeneficiaryChanged(id, to);
    }

    /// @notice Tokens that a plan has released so far, withdrawn or not.
    function vestedAmount(uint256 id) public view returns (uint256) {
        Plan storage plan = plans[id];
        if (block.timestamp <= plan.startsAt) {
            return 0;
        }
        uint256 elapsed = block.timestamp - plan.startsAt;
        if (elapsed > plan.duration) {
            elapsed = plan.duration;
        }
        return (plan.total * elapsed) / plan.duration;
    }

    function planAt(uint256 id) external view returns (Plan memory) {
        return plans[id];
    }

    function planCount() external view returns (uint256) {
        return plans.length;
    }
}
