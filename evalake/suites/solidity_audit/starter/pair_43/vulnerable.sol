// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

/// @title OrchardToken
/// @notice Token with permissionless burning; ten percent of the supply can be minted each year.
contract OrchardToken {
    string public constant name = "Orchard Token";
    string public constant symbol = "ORCH";
    uint8 public constant decimals = 18;
    uint256 public constant MINT_INTERVAL = 365 days;

    address public immutable grower;
    uint256 public totalSupply;
    uint256 public lastMintAt;
    mapping(address => uint256) public balanceOf;
    mapping(address => mapping(address => uint256)) public allowance;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed holder, address indexed spender, uint256 value);

    constructor(uint256 supply) {
        grower = msg.sender;
        lastMintAt = block.timestamp;
        totalSupply = supply;
        balanceOf[msg.sender] = supply;
        emit Transfer(address(0), msg.sender, supply);
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
        allowance[from][msg.sender] -= amount;
        _move(from, to, amount);
        return true;
    }

    /// @notice Mints the yearly tenth to the grower.
    function mintYear() external {
        require(msg.sender == grower, "not grower");
        require(block.timestamp >= lastMintAt + MINT_INTERVAL, "too early");
        lastMintAt = block.timestamp;
        uint256 amount = totalSupply / 10;
        totalSupply += amount;
        balanceOf[grower] += amount;
        emit Transfer(address(0), grower, amount);
    }

    /// @notice Destroys tokens of the caller.
    function burn(uint256 amount) external {
        _burn(msg.sender, amount);
    }

    /// @notice Destroys tokens that a holder has approved for the caller.
    function burnFrom(address from, uint256 amount) external {
        _burn(from, amount);
    }

    function _burn(address from, uint256 amount) private {
        balanceOf[from] -= amount;
        totalSupply -= amount;
        emit Transfer(from, address(0), amount);
    }

    function _move(address from, address to, uint256 amount) private {
        require(to != address(0), "zero address");
        balanceOf[from] -= amount;
        balanceOf[to] += amount;
        emit Transfer(from, to, amount);
    }
}
