// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title SailorsDividend
/// @notice A crew of up to fifty shares the ether that the boat earns in equal parts.
contract SailorsDividend {
    uint256 public constant MAX_CREW = 50;

    address public immutable captain;
    address[] public crew;
    mapping(address => bool) public isCrew;
    mapping(address => uint256) public credit;
    uint256 public pool;

    event Signed(address indexed sailor);
    event Earned(uint256 amount);
    event PaidAll(uint256 share);

    constructor() {
        captain = msg.sender;
    }

    function sign(address sailor) external {
        require(msg.sender == captain, "not captain");
        require(!isCrew[sailor] && crew.length < MAX_CREW, "cannot sign");
        isCrew[sailor] = true;
        crew.push(sailor);
        emit Signed(sailor);
    }

    /// @notice Adds earnings.
    function earn() external payable {
        pool += msg.value;
        emit Earned(msg.value);
    }

    /// @notice Shares the pool out.
    function payAll() external {
        require(crew.length > 0, "no crew");
        uint256 share = pool / crew.length;
        require(share > 0, "nothing to share");
        pool -= share * crew.length;
        for (uint256 i = 0; i < crew.length; i++) {
            (bool sent, ) = crew[i].call{value: share}("");
            require(sent, "transfer failed");
        }
        emit PaidAll(share);
    }

    /// @notice Pays the caller's credit.
    function withdraw() external {
        uint256 amount = credit[msg.sender];
        require(amount > 0, "no credit");
        credit[msg.sender] = 0;
        (bool sent, ) = msg.sender.call{value: amount}("");
        require(sent, "transfer failed");
    }
}
