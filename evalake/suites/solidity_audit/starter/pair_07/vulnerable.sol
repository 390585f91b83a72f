// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.7.6;

/// @title CafeteriaToken
/// @notice Token for a company's cafeteria, with batch payments for departments.
contract CafeteriaToken {
    string public constant name = "Cafeteria Token";
    string public constant symbol = "CAFE";
    uint8 public constant decimals = 18;
    uint256 public constant MAX_RECIPIENTS = 50;

    address public immutable operator;
    uint256 public totalSupply;

    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed holder, address indexed spender, uint256 value);

    constructor(uint256 initialSupply) {
        operator = msg.sender;
        totalSupply = initialSupply;
        balanceOf[msg.sender] = initialSupply;
        emit Transfer(address(0), msg.sender, initialSupply);
    }

    /// @notice Creates tokens for the operator, for example at the start of a month.
    function issue(uint256 amount) external {
        require(msg.sender == operator, "not operator");
        totalSupply = _add(totalSupply, amount);
        balanceOf[operator] = _add(balanceOf[operator], amount);
        emit Transfer(address(0), operator, amount);
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        _move(msg.sender, to, amount);
        return true;
    }

    function approve(address spender, uint256 amount) external returns (bool) {
        allowance[msg.sender][spender] = amount;
        emit Approval(msg.sender, spender, amount);
        return true;
    }

    function transferFrom(address from, address to, uint256 amount) external returns (bool) {
        allowance[from][msg.sender] = _sub(allowance[from][msg.sender], amount);
        _move(from, to, amount);
        return true;
    }

    /// @notice Sends the same amount from the caller to each recipient.
    /// @param recipients At most fifty accounts.
    /// @param amount Tokens for each of them.
    function distribute(address[] calldata recipients, uint256 amount) external {
        uint256 count = recipients.length;
        require(count > 0 && count <= MAX_RECIPIENTS, "bad recipient count");
        uint256 total = count * amount;
        require(balanceOf[msg.sender] >= total, "balance too low");
        balanceOf[msg.sender] -= total;
        for (uint256 i = 0; i < count; i++) {
            address to = recipients[i];
            require(to != address(0), "zero address");
            balanceOf[to] = _add(balanceOf[to], amount);
            emit Transfer(msg.sender, to, amount);
        }
    }

    /// @notice Destroys tokens of the caller.
    function redeem(uint256 amount) external {
        balanceOf[msg.sender] = _sub(balanceOf[msg.sender], amount);
        totalSupply = _sub(totalSupply, amount);
        emit Transfer(msg.sender, address(0), amount);
    }

    function _move(address from, address to, uint256 amount) private {
        require(to != address(0), "zero address");
        balanceOf[from] = _sub(balanceOf[from], amount);
        balanceOf[to] = _add(balanceOf[to], amount);
        emit Transfer(from, to, amount);
    }

    function _add(uint256 a, uint256 b) private pure returns (uint256 c) {
        c = a + b;
        require(c >= a, "sum too large");
    }

    function _sub(uint256 a, uint256 b) private pure returns (uint256) {
        require(b <= a, "difference below zero");
        return a - b;
    }
}
